//! The policies of `celltrain-core`, and the one from `docs/adding-a-policy.md`.

pub use celltrain_core::policy::*;

pub mod per_vc_dynamic_threshold;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_in_the_example_of_the_policy_page_are_valid() {
        assert!(per_vc_dynamic_threshold::sample(100).check(Some(100), &[]).is_empty());
    }
}
