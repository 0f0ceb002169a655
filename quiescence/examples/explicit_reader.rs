//! `Reader`: the thread's registration in a value, for the hottest loops.

use quiescence::Rcu;

fn main() {
    let weights = Rcu::new([0.5, 0.25, 0.25]);
    let reader = quiescence::Domain::global().reader();
    let mut sum = 0.0;
    for step in 0..1_000 {
        let guard = reader.read();
        sum += weights.load(&guard)[step % 3];
    }
    println!("{sum}");
    assert!(sum > 333.0);
}
