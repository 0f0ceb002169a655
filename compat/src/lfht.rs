//! The resizable hash table, with C's signatures.
