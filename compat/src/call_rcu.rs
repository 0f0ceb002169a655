//! Callbacks queued by C: the workers that run them, per thread, per processor and by default.
