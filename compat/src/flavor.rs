//! The flavours: who reads, registration, grace periods, fork.
