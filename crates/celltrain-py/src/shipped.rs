//! Files shipped with the package: data of papers and studies, pages about models and services, example plans and
//! scenarios.

use include_dir::{Dir, include_dir};

static PAPERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");
static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../studies");
static MODELS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/models");
static PLANS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../plans");
static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// Shipped pages from the folder `docs`: the pages about services and the glossary.
const PAGES: [(&str, &str); 3] = [
    ("docs/abr.md", include_str!("../../../docs/abr.md")),
    ("docs/gfr.md", include_str!("../../../docs/gfr.md")),
    ("docs/glossary.md", include_str!("../../../docs/glossary.md")),
];

fn roots() -> [(&'static str, &'static Dir<'static>); 5] {
    [
        ("papers/", &PAPERS),
        ("studies/", &STUDIES),
        ("docs/models/", &MODELS),
        ("plans/", &PLANS),
        ("scenarios/", &SCENARIOS),
    ]
}

pub(crate) fn text(path: &str) -> Option<&'static str> {
    if let Some((_, text)) = PAGES.iter().find(|(name, _)| *name == path) {
        return Some(text);
    }
    let (root, dir) = roots().into_iter().find(|(root, _)| path.starts_with(root))?;
    dir.get_file(&path[root.len()..])?.contents_utf8()
}

pub(crate) fn names(prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (root, dir) in roots() {
        collect(root, dir, &mut names);
    }
    names.extend(PAGES.map(|(name, _)| name.to_string()));
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

fn collect(root: &str, dir: &Dir<'_>, names: &mut Vec<String>) {
    names.extend(dir.files().map(|file| format!("{root}{}", file.path().display())));
    for dir in dir.dirs() {
        collect(root, dir, names);
    }
}
