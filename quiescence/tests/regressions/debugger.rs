//! A debugger that stops threads inside restartable sequences.
