//! The crates of a workspace as trees of modules, without those that are compiled for tests alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::functions::{Function, functions};
use crate::paths::{Import, imports, in_code};
use crate::source::{Item, ItemKind, Source};

/// A type or trait that a module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) name: String,
    pub(crate) is_public: bool,
    pub(crate) line: usize,
}

/// A module of a crate.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The names from the root of the crate to it.
    pub(crate) path: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) types: Vec<TypeName>,
    /// The names of all types and values that it defines.
    pub(crate) names: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// The paths in its code, with their lines.
    pub(crate) paths: Vec<(Vec<String>, usize)>,
    pub(crate) functions: Vec<Function>,
}

/// A crate: its modules, the root first.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The folder of its manifest.
    pub(crate) folder: String,
    pub(crate) modules: Vec<Module>,
}

/// The libraries and programs of the workspace at `root`: those with a `src/lib.rs` or a `src/main.rs`.
///
/// # Errors
/// The manifest of the workspace or a source file cannot be read.
pub(crate) fn read_workspace(root: &Path) -> io::Result<Vec<Crate>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let mut crates = Vec::new();
    for folder in members(&manifest) {
        for file in ["src/lib.rs", "src/main.rs"] {
            let file = root.join(&folder).join(file);
            if file.is_file() {
                crates.push(read_crate(&folder, &file)?);
            }
        }
    }
    Ok(crates)
}

/// The folders in the list `members` of a manifest.
fn members(manifest: &str) -> Vec<String> {
    let list = manifest.split_once("\nmembers = [").map_or("", |(_, rest)| rest);
    let list = list.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn read_crate(folder: &str, file: &Path) -> io::Result<Crate> {
    let mut found = Crate { folder: folder.to_owned(), modules: Vec::new() };
    found.read_file(file, Vec::new(), None)?;
    Ok(found)
}

impl Crate {
    fn read_file(&mut self, file: &Path, path: Vec<String>, parent: Option<usize>) -> io::Result<usize> {
        let text = fs::read_to_string(file)?;
        let source = Source::new(&text);
        self.read_module(&source, (0, source.tokens.len()), file, path, parent)
    }

    fn read_module(
        &mut self,
        source: &Source<'_>,
        (begin, end): (usize, usize),
        file: &Path,
        path: Vec<String>,
        parent: Option<usize>,
    ) -> io::Result<usize> {
        let number = self.modules.len();
        self.modules.push(Module { path, file: file.to_path_buf(), parent, ..Module::default() });
        for item in source.items(begin, end).iter().filter(|item| !item.is_test) {
            match item.kind {
                ItemKind::ModuleFile | ItemKind::ModuleBody(..) => self.read_child(source, item, number)?,
                ItemKind::Use => self.modules[number].imports.extend(imports(source, item.begin)),
                ItemKind::Type | ItemKind::Value | ItemKind::Other => self.modules[number].add(source, item),
            }
        }
        Ok(number)
    }

    fn read_child(&mut self, source: &Source<'_>, item: &Item<'_>, parent: usize) -> io::Result<()> {
        let mut path = self.modules[parent].path.clone();
        path.push(item.name.to_owned());
        let file = self.modules[parent].file.clone();
        let child = match item.kind {
            ItemKind::ModuleBody(begin, end) => self.read_module(source, (begin, end), &file, path, Some(parent))?,
            _ => self.read_file(&file_of(&file, item), path, Some(parent))?,
        };
        self.modules[parent].children.insert(item.name.to_owned(), child);
        Ok(())
    }

    /// True if `ancestor` is the module, or holds it.
    pub(crate) fn holds(&self, ancestor: usize, module: usize) -> bool {
        let mut next = Some(module);
        while let Some(at) = next {
            if at == ancestor {
                return true;
            }
            next = self.modules[at].parent;
        }
        false
    }
}

impl Module {
    fn add(&mut self, source: &Source<'_>, item: &Item<'_>) {
        if !item.name.is_empty() {
            self.names.insert(item.name.to_owned());
        }
        if item.kind == ItemKind::Type {
            self.types.push(TypeName { name: item.name.to_owned(), is_public: item.is_public, line: item.line });
        }
        let (paths, inner) = in_code(source, item.begin, item.end);
        self.paths.extend(paths);
        self.imports.extend(inner);
        self.functions.extend(functions(source, item.begin, item.end));
    }
}

/// The file of a module that is declared in another file.
fn file_of(declared_in: &Path, item: &Item<'_>) -> PathBuf {
    let folder = declared_in.parent().unwrap_or_else(|| Path::new(""));
    if let Some(path) = item.path {
        return folder.join(path);
    }
    let stem = declared_in.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = if matches!(stem, "lib" | "main" | "mod") { folder.to_path_buf() } else { folder.join(stem) };
    let file = folder.join(format!("{}.rs", item.name));
    if file.is_file() { file } else { folder.join(item.name).join("mod.rs") }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A crate of files in a folder of its own: names below `src` with their texts, `lib.rs` first.
    pub(crate) fn crate_of(name: &str, files: &[(&str, &str)]) -> Crate {
        let root = std::env::temp_dir().join(format!("mingle-measures-{}-{name}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let found = read_crate(name, &root.join(files[0].0)).unwrap();
        fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn modules_are_found_in_files_folders_and_braces_and_tests_are_left_out() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c { pub struct D; } #[cfg(test)] mod tests;"),
            ("a.rs", "mod inner; struct A;"),
            ("a/inner.rs", "pub(crate) enum Inner { X }"),
            ("b/mod.rs", "fn f() { struct Local; } #[cfg(test)] struct Planted;"),
            ("tests.rs", "struct T;"),
        ];
        let found = crate_of("modules", &files);
        let types: Vec<String> = found
            .modules
            .iter()
            .flat_map(|module| module.types.iter().map(|of| format!("{}::{}", module.path.join("::"), of.name)))
            .collect();
        assert_eq!(types, ["a::A", "a::inner::Inner", "c::D"]);
        assert!(found.holds(0, 2));
        assert!(!found.holds(3, 2));
    }

    #[test]
    fn members_are_those_of_the_manifest() {
        assert_eq!(members("[workspace]\nmembers = [\"a\", \"b/c\"]\ndefault-members = [\"d\"]\n"), ["a", "b/c"]);
    }
}
