//! A tar archive of a few small files, in memory.

use std::io;

use tar::{Builder, Header};

/// A tar archive under construction. Equal files make equal archives: owner and time are left out.
pub struct Archive {
    folder: &'static str,
    builder: Builder<Vec<u8>>,
    entries: Vec<ArchiveEntry>,
}

/// A file in an archive.
#[derive(Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// Its path, the folder included.
    pub name: String,
    /// Its length.
    pub bytes: usize,
}

impl Archive {
    /// An empty archive that unpacks into `folder`.
    pub fn new(folder: &'static str) -> Self {
        Self { folder, builder: Builder::new(Vec::new()), entries: Vec::new() }
    }

    /// Adds a file that only its owner can read once it is unpacked.
    ///
    /// # Errors
    /// The name is longer than a tar archive takes.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let name = format!("{}/{name}", self.folder);
        let mut header = Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        self.builder.append_data(&mut header, &name, content)?;
        self.entries.push(ArchiveEntry { name, bytes: content.len() });
        Ok(())
    }

    /// The bytes of the finished archive, and its entries.
    ///
    /// # Errors
    /// None that a buffer in memory has.
    pub fn finish(self) -> io::Result<(Vec<u8>, Vec<ArchiveEntry>)> {
        Ok((self.builder.into_inner()?, self.entries))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;

    fn report(contents: &[(&str, &[u8])]) -> (Vec<u8>, Vec<ArchiveEntry>) {
        let mut archive = Archive::new("report");
        contents.iter().for_each(|(name, content)| archive.add(name, content).unwrap());
        archive.finish().unwrap()
    }

    #[test]
    fn an_archive_holds_what_was_added_and_nothing_of_when_and_by_whom() {
        let contents = [("a", &b""[..]), ("b", &b"x"[..]), ("c", &[7; 1025]), ("d", &[0; 512])];
        let (bytes, entries) = report(&contents);
        assert_eq!(bytes, report(&contents).0);
        let listed: Vec<(&str, usize)> = entries.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
        assert_eq!(listed, [("report/a", 0), ("report/b", 1), ("report/c", 1025), ("report/d", 512)]);
        let mut read = tar::Archive::new(&bytes[..]);
        for (entry, (name, content)) in read.entries().unwrap().zip(contents) {
            let mut entry = entry.unwrap();
            assert_eq!(entry.path().unwrap().to_str(), Some(format!("report/{name}").as_str()));
            assert_eq!((entry.header().mode().unwrap(), entry.header().mtime().unwrap()), (0o600, 0));
            let mut found = Vec::new();
            entry.read_to_end(&mut found).unwrap();
            assert_eq!(found, content);
        }
    }
}
