//! Counts that safe code can drive: they are checked, or they cannot wrap.
