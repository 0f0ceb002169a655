//! A decision about one entry that takes effect at one moment.

/// What to do with an entry: returned by the function that is passed to
/// [`HashMapRef::compute`](super::HashMapRef::compute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V, T = ()> {
    /// Insert the key with this value, or replace its value.
    Insert(V),
    /// Remove the key.
    Remove,
    /// Change nothing; the caller receives the value.
    Abort(T),
}

/// What has happened to an entry. Pairs are references to key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<'s, K, V, T = ()> {
    /// The key was absent, and has been inserted.
    Inserted(&'s K, &'s V),
    /// The value of the key has been replaced.
    Updated {
        /// The replaced entry.
        old: (&'s K, &'s V),
        /// The new entry.
        new: (&'s K, &'s V),
    },
    /// The key has been removed.
    Removed(&'s K, &'s V),
    /// Nothing has changed, because of [`Operation::Abort`].
    Aborted(T),
    /// Nothing has changed: the key to be removed was absent.
    Absent,
}
