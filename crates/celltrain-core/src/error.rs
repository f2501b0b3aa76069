//! Faults that checks find in settings.

pub use celltrain_formula::SettingFault as Fault;
