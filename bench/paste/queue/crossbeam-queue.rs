// cargo add crossbeam-queue
use crossbeam_queue::SegQueue;

static JOBS: SegQueue<String> = SegQueue::new();

fn main() {
    JOBS.push(String::from("job"));
    assert_eq!(JOBS.pop().as_deref(), Some("job"));
}
