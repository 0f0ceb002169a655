//! The work queue: a worker thread that runs what it is given.
