//! Runs the program with command-line arguments, as a user does.

use std::io;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_celltrain-bench");

#[test]
fn the_bench_command_exits_silently_if_its_output_pipe_is_closed() {
    // Regression: `celltrain-bench --list | head -1` panicked. Here the reader has closed the pipe before the program
    // starts.
    for asked in [&["--list"][..], &["--list", "--json"], &["--help"]] {
        let (reader, writer) = io::pipe().expect("the system can create a pipe");
        drop(reader);
        let done = Command::new(PROGRAM)
            .args(asked)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("the program can be started");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !said.contains("panicked"), "{asked:?}: {}: {said}", done.status);
    }
}
