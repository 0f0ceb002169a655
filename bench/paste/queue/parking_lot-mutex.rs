// cargo add parking_lot
use std::collections::VecDeque;
use parking_lot::Mutex;

static JOBS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

fn main() {
    JOBS.lock().push_back(String::from("job"));
    let job = JOBS.lock().pop_front();
    assert_eq!(job.as_deref(), Some("job"));
}
