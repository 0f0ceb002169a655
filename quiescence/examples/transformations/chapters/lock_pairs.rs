//! Ordered pairs of locks: transfers between accounts, each of which gets a lock of its own.

use super::random::Random;

/// What is in an account at first.
const START: i64 = 1_000;

/// An account.
#[derive(Clone, Debug)]
struct Account {
    balance: i64,
    /// The sum of what has come in.
    received: u64,
}

impl Account {
    const NEW: Self = Self { balance: START, received: 0 };

    fn take(&mut self, amount: u64) {
        self.balance -= amount as i64;
    }

    fn receive(&mut self, amount: u64) {
        self.balance += amount as i64;
        self.received += amount;
    }
}

/// What a thread does: `operations` transfers, between two of `accounts`.
fn run(
    accounts: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    transfer: impl Fn(usize, usize, u64),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0;
    for _ in 0..operations {
        let from = random.below(accounts);
        let to = (from + 1 + random.below(accounts - 1)) % accounts;
        let amount = random.number() & 15;
        transfer(from, to, amount);
        sum += amount;
    }
    sum
}

/// The sum of all that has been received, of accounts in which nothing was lost.
fn total(accounts: impl Iterator<Item = Account>) -> u64 {
    let (mut received, mut difference) = (0, 0);
    for account in accounts {
        received += account.received;
        difference += account.balance - START;
    }
    assert_eq!(difference, 0, "money was made or lost");
    received
}

/// One lock for all accounts.
pub mod before {
    use super::Account;
    use std::sync::Mutex;

    /// Accounts, by number.
    #[derive(Debug)]
    pub struct Accounts {
        count: usize,
        accounts: Mutex<Vec<Account>>,
    }

    impl Accounts {
        /// `n` of them, two at least.
        pub fn new(n: usize) -> Self {
            Self { count: n, accounts: Mutex::new(vec![Account::NEW; n]) }
        }

        /// Moves an amount from one account to another.
        pub fn transfer(&self, from: usize, to: usize, amount: u64) {
            let mut accounts = self.accounts.lock().unwrap();
            accounts[from].take(amount);
            accounts[to].receive(amount);
        }

        /// Some transfers; the sum of what they have moved.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.count, thread, operations, seed, |from, to, amount| {
                self.transfer(from, to, amount);
            })
        }

        /// The sum of all that was moved, of accounts whose sum is what it was.
        pub fn total(&self) -> u64 {
            super::total(self.accounts.lock().unwrap().iter().cloned())
        }
    }
}

/// A lock of each account. A transfer takes two of them, in the order of their addresses, so that
/// two transfers in opposite directions do not wait for each other.
pub mod after {
    use super::super::lock_pair::lock_pair;
    use super::Account;
    use std::sync::Mutex;

    #[derive(Debug)]
    #[repr(align(64))]
    struct Locked(Mutex<Account>);

    /// Accounts, by number.
    #[derive(Debug)]
    pub struct Accounts(Box<[Locked]>);

    impl Accounts {
        /// `n` of them, two at least.
        pub fn new(n: usize) -> Self {
            Self((0..n).map(|_| Locked(Mutex::new(Account::NEW))).collect())
        }

        /// Moves an amount from one account to another.
        pub fn transfer(&self, from: usize, to: usize, amount: u64) {
            let (mut from, mut to) = lock_pair(&self.0[from].0, &self.0[to].0).unwrap();
            from.take(amount);
            to.receive(amount);
        }

        /// Some transfers; the sum of what they have moved.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.0.len(), thread, operations, seed, |from, to, amount| {
                self.transfer(from, to, amount);
            })
        }

        /// The sum of all that was moved, of accounts whose sum is what it was. Not beside
        /// transfers.
        pub fn total(&self) -> u64 {
            super::total(self.0.iter().map(|account| account.0.lock().unwrap().clone()))
        }
    }
}
