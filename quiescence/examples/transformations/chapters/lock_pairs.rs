//! Ordered pairs of locks: transfers between accounts, each of which gets a lock of its own.

use super::random::Random;

/// What is in an account at first.
const START: i64 = 1_000;

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
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

/// Accounts, by number, under locks.
pub trait Locks: Sync {
    /// `n` of them.
    fn new(n: usize) -> Self;

    /// Moves an amount from one account to another.
    fn transfer(&self, from: usize, to: usize, amount: u64);

    /// All of them. Not beside transfers.
    fn all(&self) -> Vec<Account>;
}

/// Accounts, by number.
#[derive(Debug)]
pub struct Accounts<L> {
    count: usize,
    accounts: L,
}

impl<L: Locks> Accounts<L> {
    /// `n` of them, two at least.
    pub fn new(n: usize) -> Self {
        Self { count: n, accounts: L::new(n) }
    }

    /// Some transfers; the sum of what they have moved.
    pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut sum = 0;
        for _ in 0..operations {
            let from = random.below(self.count);
            let to = (from + 1 + random.below(self.count - 1)) % self.count;
            let amount = random.number() & 15;
            self.accounts.transfer(from, to, amount);
            sum += amount;
        }
        sum
    }

    /// The sum of all that was moved, of accounts whose sum is what it was. Not beside transfers.
    pub fn total(&self) -> u64 {
        let all = self.accounts.all();
        let difference: i64 = all.iter().map(|account| account.balance - START).sum();
        assert_eq!(difference, 0, "money was made or lost");
        all.iter().map(|account| account.received).sum()
    }
}

/// One lock for all accounts.
pub mod before {
    use super::Account;
    use std::sync::Mutex;

    /// Under that lock.
    pub type Accounts = super::Accounts<Mutex<Vec<Account>>>;

    impl super::Locks for Mutex<Vec<Account>> {
        fn new(n: usize) -> Self {
            Self::new(vec![Account::NEW; n])
        }

        fn transfer(&self, from: usize, to: usize, amount: u64) {
            let mut accounts = self.lock().unwrap();
            accounts[from].take(amount);
            accounts[to].receive(amount);
        }

        fn all(&self) -> Vec<Account> {
            self.lock().unwrap().clone()
        }
    }
}

/// A lock of each account. A transfer takes two of them, in the order of their addresses, so that
/// two transfers in opposite directions do not wait for each other.
pub mod after {
    use super::super::lock_pair::lock_pair;
    use super::Account;
    use std::sync::Mutex;

    /// A lock, on a line of its own.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Locked(Mutex<Account>);

    /// With a lock each.
    pub type Accounts = super::Accounts<Box<[Locked]>>;

    impl super::Locks for Box<[Locked]> {
        fn new(n: usize) -> Self {
            (0..n).map(|_| Locked(Mutex::new(Account::NEW))).collect()
        }

        fn transfer(&self, from: usize, to: usize, amount: u64) {
            let (mut from, mut to) = lock_pair(&self[from].0, &self[to].0).unwrap();
            from.take(amount);
            to.receive(amount);
        }

        fn all(&self) -> Vec<Account> {
            self.iter().map(|account| account.0.lock().unwrap().clone()).collect()
        }
    }
}
