//! The janitor: a process of its own that removes the namespaces of an air whose process was killed.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mingle_air::live;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Failure;

/// A running janitor. It acts when its standard input ends, which the death of this process causes.
pub(super) struct Janitor {
    process: Child,
    input: Option<ChildStdin>,
}

impl Janitor {
    /// Starts a janitor for the namespaces with this prefix.
    pub(super) fn start(prefix: &str) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        // In a process group of its own: an interrupt at the terminal is not meant for it.
        command.args(["janitor", prefix]).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut process = command.spawn()?;
        let input = process.stdin.take();
        Ok(Self { process, input })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself.
        let _ = self.process.wait();
    }
}

/// Waits for the end of standard input, then removes the namespaces with this prefix.
pub(super) fn serve(prefix: &str) -> Result<ExitCode, Failure> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut sink = [0; 64];
    loop {
        match std::io::stdin().read(&mut sink) {
            Ok(0) => break,
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => break,
            _ => {}
        }
    }
    live::clean(prefix);
    Ok(ExitCode::SUCCESS)
}
