//! The extension traits can be imported beside those of tokio-util and tokio-stream: no call is ambiguous.

use std::time::Duration;
use tokio_stream::StreamExt;
use tokio_util::future::FutureExt;
use wheelwork::HashedWheelTimer;
use wheelwork::future::{TimedFutureExt, TimedStreamExt};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn futures_and_streams_have_the_methods_of_both() {
    let timer = HashedWheelTimer::new().unwrap();
    assert_eq!(async { 7 }.timeout_on(&timer, MINUTE).await, Ok(7));
    assert_eq!(async { 7 }.timeout_at_on(&timer, timer.now() + MINUTE).await, Ok(7));
    assert_eq!(async { 7 }.timeout(MINUTE).await.unwrap(), 7); // of tokio-util

    let items = || tokio_stream::iter([1, 2, 3]);
    let limited: Vec<_> = items().timeout_on(&timer, MINUTE).collect().await;
    assert_eq!(limited, [Ok(1), Ok(2), Ok(3)]);
    let repeated: Vec<_> = items().timeout_repeating_on(&timer, MINUTE).collect().await;
    assert_eq!(repeated, limited);
    let chunks = items().chunks_timeout_on(&timer, 2, MINUTE).collect::<Vec<_>>();
    assert_eq!(chunks.await, [vec![1, 2], vec![3]]);
    let last: Vec<_> = items().debounce_on(&timer, MINUTE).collect().await;
    assert_eq!(last, [3]);
    let throttled: Vec<_> = items().throttle_on(&timer, Duration::ZERO).collect().await;
    assert_eq!(throttled, [1, 2, 3]);

    // Of tokio-stream:
    assert_eq!(items().timeout(MINUTE).map(Result::unwrap).collect::<Vec<_>>().await, [1, 2, 3]);
    assert_eq!(items().throttle(Duration::ZERO).collect::<Vec<_>>().await, [1, 2, 3]);
    assert_eq!(items().chunks_timeout(2, MINUTE).collect::<Vec<_>>().await, [vec![1, 2], vec![3]]);
}
