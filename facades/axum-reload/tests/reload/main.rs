//! The server of the example, over loopback.

mod load;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use axum_reload::{Routes, runtime, serve};
use quiescence::Rcu;
use tokio::runtime::Runtime;

/// A server of these routes, as long as the runtime is there.
fn served(runtime: &Runtime, routes: &Arc<Rcu<Routes>>) -> SocketAddr {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve(listener, Arc::clone(routes)));
    address
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_request_after_a_reload_sees_the_new_routes() {
    let runtime = runtime(2).unwrap();
    let routes = Arc::new(Rcu::new(Routes::parse("/a one\n# none\n\n/b -> /a\n").unwrap()));
    let address = served(&runtime, &routes);
    assert!(get(address, "/a").ends_with("\r\n\r\none"));
    let redirected = get(address, "/b");
    assert!(redirected.starts_with("HTTP/1.1 307") && redirected.contains("location: /a\r\n"));
    assert!(get(address, "/c").starts_with("HTTP/1.1 404"));

    routes.store(Routes::parse("/c three").unwrap());
    assert!(get(address, "/c").ends_with("\r\n\r\nthree"));
    assert!(get(address, "/a").starts_with("HTTP/1.1 404"));
}

/// Under the load every reply is of a table that was there, and the tables replaced do not pile up.
#[test]
fn requests_beside_reloads_see_whole_tables() {
    let [requests, reloads] = load::run(2, 4, Duration::from_millis(500)).unwrap();
    assert!(requests > 0 && reloads > 0, "{requests} requests, {reloads} reloads");
    let statistics = quiescence::Domain::global().statistics();
    assert!(statistics.limit_overruns == 0, "{statistics:?}");
}

#[test]
fn a_line_that_is_no_route_is_named() {
    for (table, why) in [
        ("/a one\n/b", "line 2: a path without a reply"),
        ("a one", "line 1: a path begins with /"),
        ("/a ->", "line 1: a redirection without a path"),
        ("/a -> b", "line 1: a redirection without a path"),
        ("/a one\n/a two", "line 2: this path stands above already"),
    ] {
        let told = Routes::parse(table).unwrap_err().to_string();
        assert!(told.starts_with(why), "{told}");
        assert!(told.contains("write \"/path text\""), "{told}");
    }
}
