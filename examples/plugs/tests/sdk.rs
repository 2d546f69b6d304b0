//! A call of an AWS SDK whose server never answers, on a manual clock.

use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock};

const LIMIT: Duration = Duration::from_secs(30);

/// A server that never answers.
#[derive(Debug)]
struct Silent;

impl HttpConnector for Silent {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(pending())
    }
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_on_the_timer() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let operation = Operation::builder()
        .service_name("silence")
        .operation_name("listen")
        .behavior_version(BehaviorVersion::latest())
        .http_client(http_client_fn(|_, _| SharedHttpConnector::new(Silent)))
        .endpoint_url("http://localhost:1")
        .no_auth()
        .no_retry()
        .sleep_impl(timer.clone())
        .timeout_config(TimeoutConfig::builder().operation_timeout(LIMIT).build())
        .serializer(|()| Ok(HttpRequest::new(SdkBody::empty())))
        .deserializer::<(), Infallible>(|_| Ok(()))
        .build();

    let begin = timer.now();
    let call = tokio::spawn(async move { operation.invoke(()).await });
    while !call.is_finished() {
        clock.advance_in_one_jump(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    let failed = call.await.unwrap().unwrap_err();
    assert!(matches!(failed, SdkError::TimeoutError(_)), "{failed:?}");
    assert!(timer.now() - begin >= LIMIT);
}
