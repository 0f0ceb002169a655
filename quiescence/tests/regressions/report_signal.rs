//! The signal by which a report takes stacks harms no thread.
