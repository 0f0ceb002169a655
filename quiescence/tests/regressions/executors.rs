//! Sleepable domains whose readers and updaters are tasks of an executor.
