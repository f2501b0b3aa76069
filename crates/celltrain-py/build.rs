//! Rebuilds the module if a shipped file is added or changed, as these files are compiled into it.

fn main() {
    for folder in
        ["papers", "studies", "docs/abr.md", "docs/gfr.md", "docs/glossary.md", "docs/models", "plans", "scenarios"]
    {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
}
