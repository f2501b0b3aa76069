//! The files shipped with the package are compiled into the module: a new or changed one means a new module.

fn main() {
    for folder in
        ["papers", "studies", "docs/abr.md", "docs/gfr.md", "docs/glossary.md", "docs/models", "plans", "scenarios"]
    {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
}
