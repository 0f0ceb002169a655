// cargo add quiescence
use quiescence::collections::Stack;

fn main() {
    let jobs = Stack::new();
    jobs.push(String::from("job"));
    assert_eq!(jobs.pop().as_deref(), Some("job"));
}
