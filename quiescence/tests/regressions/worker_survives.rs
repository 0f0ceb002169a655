//! Panics of user code on the worker thread, wherever that code runs.
