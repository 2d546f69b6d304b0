//! Limits of routes.

use crate::app::KEPT;
use crate::frames;
use crate::world::{SECOND, TICK, limits, world, world_that_tells_limits, world_with};
use http::Request;
use wheelwork_http::{Effect, Limit, RequestLimits};

/// `/never` has a longer limit than the others.
fn never_longer(request: &Request<()>) -> Option<RequestLimits> {
    let longer = limits().for_request().handler(100 * SECOND);
    (request.uri().path() == "/never").then_some(longer)
}

#[test]
fn a_route_changes_the_limit_of_its_handler() {
    world_with(limits(), never_longer, async |world| {
        let mut http1 = world.connect().await;
        http1.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let mut http2 = world.connect_http2().await;
        http2.send(frames::get(1, "/never")).await;
        world.pass(100 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Handler, Effect::Request); 2]);
        assert!(http1.text().contains("503"));
    });
}

#[test]
fn a_route_changes_the_limit_of_its_response() {
    let limits_for = |request: &Request<()>| {
        (request.uri().path() == "/endless").then_some(limits().for_request().response(5 * SECOND))
    };
    world_with(limits(), limits_for, async |world| {
        let mut http1 = world.connect().await;
        http1.send("GET /endless HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let mut http2 = world.connect_http2_with_window(0).await;
        http2.send(frames::get(1, "/endless")).await;
        let mut cuts = world.cuts_of_writes(5 * SECOND, 2).await;
        cuts.sort_by_key(|&(_, effect)| effect == Effect::Close);
        assert_eq!(cuts, [(Limit::Response, Effect::Request), (Limit::Response, Effect::Close)]);
    });
}

#[test]
fn a_response_carries_its_limits() {
    world_with(
        limits(),
        |_| None,
        async |world| {
            let mut http1 = world.connect().await;
            http1.send("GET /own HTTP/1.1\r\nhost: server\r\n\r\n").await;
            let mut http2 = world.connect_http2_with_window(0).await;
            http2.send(frames::get(1, "/own")).await;
            assert_eq!(world.cuts_of_writes(5 * SECOND, 2).await.len(), 2);
        },
    );
}

/// The handler waits for the body already when it answers.
#[test]
fn a_response_carries_a_shorter_limit_for_the_rest_of_the_body() {
    world(limits(), async |world| {
        let mut http1 = world.connect().await;
        http1.send("POST /early-own HTTP/1.1\r\nhost: server\r\ncontent-length: 3\r\n\r\n").await;
        let mut http2 = world.connect_http2().await;
        http2.send(frames::post(1, "/early-own")).await;
        world.pass(5 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Body, Effect::Request); 2]);
    });
}

#[test]
fn a_handler_changes_the_limits_of_its_request() {
    world_that_tells_limits(limits(), async |world| {
        let mut http1 = world.connect().await;
        http1.send("GET /slower?100 HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let mut http2 = world.connect_http2().await;
        http2.send(frames::get(1, "/slower?100")).await;
        world.pass(100 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Handler, Effect::Request); 2]);
        assert!(http1.text().contains("503"));
        // The next request has the server's limits again.
        http1.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
        world.pass(60 * SECOND).await;
        // And the other connection is idle.
        assert!(world.cuts().contains(&(Limit::Handler, Effect::Request)));
    });
}

#[test]
fn a_handler_can_shorten_its_limit() {
    world_that_tells_limits(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("GET /slower?5 HTTP/1.1\r\nhost: server\r\n\r\n").await;
        world.pass(5 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Handler, Effect::Request)]);
    });
}

#[test]
fn a_handler_changes_the_limits_of_its_body_while_it_waits() {
    world_that_tells_limits(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("POST /slower?100 HTTP/1.1\r\nhost: server\r\ncontent-length: 5\r\n\r\n").await;
        world.pass(100 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Body, Effect::Request)]);
        assert!(client.text().contains("408"));
    });
}

#[test]
fn the_limits_of_a_request_that_has_ended_change_nothing() {
    world_that_tells_limits(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("GET /keep-own HTTP/1.1\r\nhost: server\r\n\r\n").await;
        assert!(client.text().contains("200"));
        let own = KEPT.take().unwrap();
        assert!(own.get().is_none());
        assert!(!own.change(|limits| limits.handler(None)));
    });
}
