//! A domain for each object: making, finding and dropping each takes constant time.
