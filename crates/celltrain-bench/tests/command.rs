//! The program as a person runs it.

use std::io;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_celltrain-bench");

#[test]
fn a_reader_that_has_seen_enough_ends_it_without_a_word() {
    // `celltrain-bench --list | head -1` used to end in a panic. Here the reader has gone before it begins.
    for asked in [&["--list"][..], &["--list", "--json"], &["--help"]] {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let done = Command::new(PROGRAM).args(asked).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !said.contains("panicked"), "{asked:?}: {}: {said}", done.status);
    }
}
