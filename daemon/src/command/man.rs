//! `mingle man`: writes a manual page for every command, from the same definitions as `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file};

use crate::cli::{EXIT_CODES, ManArgs};
use crate::{config, out};

/// Writes the pages and prints their paths on stdout.
pub(super) fn execute(arguments: &ManArgs, json: bool) -> Result {
    let folder = &arguments.out;
    output_file::make_folder(folder)?;
    let mut pages = Vec::new();
    let mut command = config::command_line().disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder, &mut pages)?;
    if json {
        out::line(serde_json::json!({ "schema": "mingle.man/1", "pages": pages }));
    } else {
        pages.iter().for_each(|page| out::line(page.display()));
        remark!("read one with: man {}", folder.join("mingle.1").display());
    }
    Ok(())
}

/// Writes the page of a command, then those of its subcommands. There are two levels of them.
fn write_pages(command: &Command, folder: &Path, pages: &mut Vec<PathBuf>) -> Result {
    let page = Man::new(command.clone()).manual("Mingle").source(concat!("mingle ", env!("CARGO_PKG_VERSION")));
    let path = folder.join(page.get_filename());
    let text = render(&page, command).context(ErrorKind::Unexpected, "cannot make a manual page")?;
    output_file::write(&path, &text)?;
    pages.push(path);
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder, pages)?;
    }
    Ok(())
}

fn render(page: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    if command.get_arguments().next().is_some() {
        page.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    text.extend_from_slice(exit_status().as_bytes());
    Ok(text)
}

/// The table of exit codes in `mingle --help`, line by line.
fn exit_status() -> String {
    let table = EXIT_CODES.split_once('\n').map_or(EXIT_CODES, |(_, table)| table);
    let escaped = table.replace('\\', "\\e").replace('-', "\\-");
    format!(".SH \"EXIT STATUS\"\n.nf\n{escaped}\n.fi\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    /// Names of the expected pages.
    fn commands(command: &Command, above: &str, names: &mut BTreeSet<String>) {
        let name =
            if above.is_empty() { command.get_name().to_owned() } else { format!("{above}-{}", command.get_name()) };
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            commands(subcommand, &name, names);
        }
        names.insert(format!("{name}.1"));
    }

    #[test]
    fn every_command_has_a_page_and_each_names_all_exit_codes() {
        let folder = tempfile::tempdir().unwrap();
        execute(&ManArgs { out: folder.path().join("man") }, true).unwrap();
        let mut wanted = BTreeSet::new();
        commands(&config::command_line(), "", &mut wanted);
        assert!(wanted.contains("mingle-plan-make.1"), "{wanted:?}");
        let found: BTreeSet<String> = fs::read_dir(folder.path().join("man"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(found, wanted);
        for page in &found {
            let text = fs::read_to_string(folder.path().join("man").join(page)).unwrap();
            for kind in ErrorKind::ALL {
                let line = format!("{}  ", kind as u8);
                assert!(text.contains(&line), "{page} does not name exit code {}", kind as u8);
            }
            assert!(text.contains(".SH OPTIONS") || text.contains(".SH SUBCOMMANDS"), "{page}");
        }
    }
}
