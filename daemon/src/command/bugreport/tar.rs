//! An uncompressed tar archive of a few small files, in the format of POSIX.1-1988 (ustar).

const BLOCK: usize = 512;
/// The longest name in a header.
const NAME_BYTES: usize = 100;

/// An archive in memory. Equal files make equal archives: owner and time are not in it.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    folder: &'static str,
    bytes: Vec<u8>,
}

impl Archive {
    /// An empty archive that unpacks into `folder`.
    pub(super) fn new(folder: &'static str) -> Self {
        Self { folder, bytes: Vec::new() }
    }

    /// Adds a file. Names are those of this program, and short.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        self.bytes.extend_from_slice(&header(&format!("{}/{name}", self.folder), content.len()));
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// The archive with its end: two blocks of zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }
}

fn header(name: &str, length: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(NAME_BYTES)]);
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum counts itself as spaces.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Names and lengths of what is in an archive that this program made.
pub(super) fn list(archive: &[u8]) -> Vec<(String, usize)> {
    let mut entries = Vec::new();
    let mut rest = archive;
    while let Some((block, after)) = rest.split_at_checked(BLOCK)
        && block[0] != 0
    {
        let text = |field: &[u8]| String::from_utf8_lossy(field).trim_end_matches('\0').to_owned();
        let length = usize::from_str_radix(&text(&block[124..136]), 8).unwrap_or_default();
        entries.push((text(&block[..NAME_BYTES]), length));
        rest = after.get(length.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
    entries
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_archive_lists_what_was_added_and_is_whole_blocks_long() {
        let mut archive = Archive::new("report");
        let long = vec![7; 1025];
        for (name, content) in [("a", &b""[..]), ("b", &b"x"[..]), ("c", &long), ("d", &[0; 512])] {
            archive.add(name, content);
        }
        let bytes = archive.finish();
        assert_eq!(bytes.len() % BLOCK, 0);
        let wanted = [("report/a", 0), ("report/b", 1), ("report/c", 1025), ("report/d", 512)];
        assert_eq!(list(&bytes), wanted.map(|(name, length)| (name.to_owned(), length)));
    }

    #[test]
    fn the_tar_of_this_system_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar");
        let mut archive = Archive::new("report");
        archive.add("first.txt", b"one\n");
        archive.add("second.txt", &[b'2'; 600]);
        std::fs::write(&path, archive.finish()).unwrap();
        let Ok(output) = std::process::Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(folder.path()).output()
        else {
            eprintln!("skipped: there is no tar here");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read(folder.path().join("report/first.txt")).unwrap(), b"one\n");
        assert_eq!(std::fs::read(folder.path().join("report/second.txt")).unwrap(), [b'2'; 600]);
    }
}
