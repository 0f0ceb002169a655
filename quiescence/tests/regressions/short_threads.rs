//! Threads that retire one object and end.
