// cargo add quiescence
use quiescence::collections::Queue;

fn main() {
    let jobs = Queue::new();
    jobs.push(String::from("job"));
    assert_eq!(jobs.pop().as_deref(), Some("job"));
}
