//! tonic's `Connected` for [`IdleStream`].

use super::IdleStream;
use tonic::transport::server::Connected;

/// The information is that of the stream inside.
impl<S: Connected> Connected for IdleStream<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.get_ref().connect_info()
    }
}
