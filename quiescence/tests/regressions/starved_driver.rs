//! A driver that gets no CPU does not hold up other updaters.
