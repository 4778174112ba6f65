//! Signatures of files that are no text.

/// The format that the first bytes indicate, with advice; `None` where it may be text.
pub(crate) fn of(start: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 11] = [
        (
            b"PK\x03\x04",
            "it is a zip archive, such as Excel's .xlsx or NumPy's .npz, and no text: save it as CSV (UTF-8)",
        ),
        (b"\xd0\xcf\x11\xe0", "it is an old workbook of Excel (.xls) and no text: save it as CSV (UTF-8)"),
        (
            b"PAR1",
            "it is a Parquet file and no text: write it as CSV, as with pandas.read_parquet(...).to_csv(..., index=False)",
        ),
        (b"ARROW1", "it is an Arrow file and no text: write it as CSV"),
        (b"\x89HDF", "it is an HDF5 file and no text: write it as CSV"),
        (
            b"\x93NUMPY",
            "it is an array of NumPy (.npy) and no text: write it as CSV, as with numpy.savetxt(..., delimiter=\",\")",
        ),
        (b"BZh", "it is packed with bzip2: unpack it, or pack it with gzip"),
        (b"\xfd7zXZ", "it is packed with xz: unpack it, or pack it with gzip"),
        (b"\x28\xb5\x2f\xfd", "it is packed with zstd: unpack it, or pack it with gzip"),
        (b"\x1f\x8b", "it is packed with gzip twice: unpack it once"),
        (b"\xff\xfe\0\0", "it is text in UTF-32: save it as UTF-8"),
    ];
    let known = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, looks_like)| *looks_like);
    let is_pickle = matches!(start, [0x80, 2..=5, ..]);
    known.or(is_pickle.then_some("it is a pickle of Python and no text: write it as CSV"))
}
