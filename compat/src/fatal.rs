//! What is said where a program uses the interface as it must not be used; then the process ends.
