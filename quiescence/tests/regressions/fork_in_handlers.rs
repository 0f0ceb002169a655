//! Forks and waits in places where the caller does not expect them.
