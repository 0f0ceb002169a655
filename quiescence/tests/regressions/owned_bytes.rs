//! The limit in bytes counts what a value owns.
