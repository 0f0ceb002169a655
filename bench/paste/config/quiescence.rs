// cargo add quiescence
use quiescence::Rcu;

fn main() {
    let config = Rcu::new(String::from("old"));
    // A reader: the reference lives as long as the section.
    assert_eq!(*config.read(), "old");
    // An updater: the old value is freed when no reader can see it.
    config.store(String::from("new"));
    assert_eq!(*config.read(), "new");
}
