//! Build script that compiles the commit into the Python module, and rebuilds the module if a shipped file or the
//! commit changes.

use std::path::Path;
use std::process::Command;

fn main() {
    // Rebuild if a shipped file changes, because shipped files are compiled into the module.
    for folder in
        ["papers", "studies", "docs/abr.md", "docs/gfr.md", "docs/glossary.md", "docs/models", "plans", "scenarios"]
    {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
    println!("cargo:rerun-if-env-changed=CELLTRAIN_COMMIT");
    // A packager without git can set the commit in an environment variable.
    if let Some(commit) = std::env::var("CELLTRAIN_COMMIT").ok().or_else(commit) {
        println!("cargo:rustc-env=CELLTRAIN_COMMIT={commit}");
    }
}

/// Returns the commit of this checkout; `None` in a source archive or without git.
///
/// An archive may be unpacked inside another repository, so only a repository at the root of the project counts.
fn commit() -> Option<String> {
    let root = Path::new("../..");
    if !root.join(".git").exists() {
        return None;
    }
    let git = |words: &[&str]| -> Option<String> {
        let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    // Rebuild if the log of HEAD changes, because each commit and each switch of branches appends to this log.
    for file in ["logs/HEAD", "HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        let path = if Path::new(&path).is_absolute() { path } else { format!("../../{path}") };
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
            break;
        }
    }
    git(&["rev-parse", "--short=8", "HEAD"])
}
