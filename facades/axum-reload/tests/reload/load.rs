//! Requests over loopback while the routes are replaced again and again.
//!
//! The text of each route is the number of its table. So each reply tells which table it is of: at
//! least the one that was there before the request, and at most the one that was there after the
//! reply.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use axum_reload::{Routes, runtime, serve};
use quiescence::Rcu;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How many routes a table has.
const ROUTES: u64 = 100;

fn table(number: u64) -> Routes {
    let lines: String = (0..ROUTES).map(|route| format!("/{route} {number}\n")).collect();
    Routes::parse(&lines).expect("a path and a number a line")
}

/// Has so many clients ask a server of so many workers, in the same process, for this long. Returns
/// how many requests got a reply, and how many tables there were.
///
/// # Errors
/// If a socket fails, or a reply is of no table that was there.
pub(crate) fn run(workers: usize, clients: usize, lasts: Duration) -> io::Result<[u64; 2]> {
    let runtime = runtime(workers)?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let tables = Arc::new(Tables::default());
        let routes = Arc::new(Rcu::new(table(0)));
        let server = tokio::spawn(serve(listener, Arc::clone(&routes)));
        let clients: Vec<_> = (0..clients)
            .map(|seed| {
                let tables = Arc::clone(&tables);
                tokio::spawn(async move {
                    tables.ask(TcpStream::connect(address).await?, seed as u64).await
                })
            })
            .collect();
        let reloads = tokio::spawn({
            let tables = Arc::clone(&tables);
            async move { tables.reload(&routes).await }
        });

        tokio::time::sleep(lasts).await;
        tables.stop.store(true, SeqCst);
        let mut requests = 0;
        for client in clients {
            requests += client.await??;
        }
        let reloads = reloads.await?;
        server.abort();
        Ok([requests, reloads])
    })
}

/// Which tables there are.
#[derive(Debug, Default)]
struct Tables {
    /// Stored, and seen by each request that begins now.
    stored: AtomicU64,
    /// About to be stored.
    announced: AtomicU64,
    stop: AtomicBool,
}

impl Tables {
    async fn reload(&self, routes: &Rcu<Routes>) -> u64 {
        let mut number = 0;
        while !self.stop.load(SeqCst) {
            number += 1;
            self.announced.store(number, SeqCst);
            routes.store_async(table(number)).await;
            self.stored.store(number, SeqCst);
            tokio::task::yield_now().await;
        }
        number
    }

    async fn ask(&self, mut stream: TcpStream, seed: u64) -> io::Result<u64> {
        stream.set_nodelay(true)?;
        let (mut requests, mut route) = (0, seed);
        while !self.stop.load(SeqCst) {
            route = (route + 7) % ROUTES;
            let least = self.stored.load(SeqCst);
            let number = ask_once(&mut stream, route).await?;
            requests += 1;
            let most = self.announced.load(SeqCst);
            if !(least..=most).contains(&number) {
                return Err(io::Error::other(format!(
                    "/{route} was of table {number}, where tables {least} to {most} were there"
                )));
            }
        }
        Ok(requests)
    }
}

/// A request on a connection that stays. Returns the number in the reply's body.
async fn ask_once(stream: &mut TcpStream, route: u64) -> io::Result<u64> {
    let request = format!("GET /{route} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    loop {
        if stream.read_buf(&mut reply).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        if let Some(body) = body(&reply)? {
            let number = std::str::from_utf8(body).ok().and_then(|text| text.parse().ok());
            return number.ok_or_else(|| {
                io::Error::other(format!("no number in {}", String::from_utf8_lossy(&reply)))
            });
        }
    }
}

/// The body of a reply, once all of it is there.
fn body(reply: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&reply[..end]);
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("not what was asked for: {head}")));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let length: usize = length.ok_or_else(|| io::Error::other(format!("no length in {head}")))?;
    Ok(reply.get(end + 4..end + 4 + length))
}
