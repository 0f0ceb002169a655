use std::collections::VecDeque;
use std::sync::Mutex;

static JOBS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

fn main() {
    JOBS.lock().unwrap().push_back(String::from("job"));
    let job = JOBS.lock().unwrap().pop_front();
    assert_eq!(job.as_deref(), Some("job"));
}
