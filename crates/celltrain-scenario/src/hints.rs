//! Suggestions for misspelt names.

use celltrain_core::stop::{Interrupted, Stop};

use crate::fault::{KeyFault, nearest};

/// Suggests the name that was probably meant. Many faults are unlikely to be typos, and searching all names for each
/// would take too long.
pub(crate) fn hint<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    faults: &[KeyFault],
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    const MOST: usize = 100;
    if faults.len() < MOST { closest(given, names, stop) } else { Ok(None) }
}

/// Returns the name most similar to `given`, if one is similar enough.
pub(crate) fn closest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    let mut stopped = Ok(());
    let found = nearest(given, stop.each(names).map_while(|name| name.map_err(|error| stopped = Err(error)).ok()));
    stopped.map(|()| found)
}

/// Formats a suggestion for a message, with a trailing space; empty if there is none.
pub(crate) fn did_you_mean(meant: Option<&str>) -> String {
    meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default()
}
