//! Suggestions for misspelt names.

use celltrain_core::cancellation::CancellationToken;

use crate::fault::{KeyFault, nearest};

/// Suggests the name that was probably meant. Gives no suggestions if there are many faults, because these are
/// unlikely to be typos, and each search takes time.
pub(crate) fn hint<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    faults: &[KeyFault],
    token: &CancellationToken<'_>,
) -> Option<&'a str> {
    const MOST: usize = 100;
    if faults.len() < MOST { closest(given, names, token) } else { None }
}

/// Returns the name most similar to `given`, if one is similar enough. Returns early if cancelled.
pub(crate) fn closest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    token: &CancellationToken<'_>,
) -> Option<&'a str> {
    nearest(given, token.each(names).map_while(Result::ok))
}

/// Formats a suggestion for a message, followed by a space; empty if there is none.
pub(crate) fn did_you_mean(meant: Option<&str>) -> String {
    meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default()
}
