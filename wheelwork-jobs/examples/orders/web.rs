//! Requests. An order and its jobs are stored in one transaction: either both are there, or neither is.

use super::{Failed, Terms, lapse, remind};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use deadpool_postgres::Pool;
use serde::{Deserialize, Serialize};
use wheelwork_jobs::{Jobs, NewJob, Postgres};

#[derive(Clone)]
pub struct Service {
    pub pool: Pool,
    pub jobs: Jobs<Postgres>,
    pub terms: Terms,
}

pub fn router(service: Service) -> Router {
    Router::new()
        .route("/orders", post(order))
        .route("/orders/{id}", get(show))
        .route("/orders/{id}/pay", post(pay))
        .with_state(service)
}

#[derive(Deserialize)]
struct NewOrder {
    customer: String,
    item: String,
}

#[derive(Serialize)]
struct Order {
    id: i64,
    state: String,
}

async fn order(
    State(Service { pool, jobs, terms }): State<Service>,
    Json(NewOrder { customer, item }): Json<NewOrder>,
) -> Result<(StatusCode, Json<Order>), Refusal> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    let insert = "INSERT INTO orders (customer, item) VALUES ($1, $2) RETURNING id, state";
    let row = transaction.query_one(insert, &[&customer, &item]).await?;
    let order = Order { id: row.get(0), state: row.get(1) };

    let reminder = NewJob::new(remind::KIND, &remind::Reminder { customer, item })?
        .key(remind::key(order.id))
        .due(terms.remind_after);
    jobs.schedule_in(&*transaction, &reminder).await?;
    let lapse =
        NewJob::new(lapse::KIND, &order.id)?.key(lapse::key(order.id)).due(terms.lapse_after);
    jobs.schedule_in(&*transaction, &lapse).await?;
    transaction.commit().await?;
    Ok((StatusCode::CREATED, Json(order)))
}

async fn show(State(service): State<Service>, Path(id): Path<i64>) -> Result<Response, Refusal> {
    let client = service.pool.get().await?;
    let row = client.query_opt("SELECT id, state FROM orders WHERE id = $1", &[&id]).await?;
    Ok(match row {
        Some(row) => Json(Order { id: row.get(0), state: row.get(1) }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

async fn pay(
    State(service): State<Service>,
    Path(id): Path<i64>,
) -> Result<(StatusCode, &'static str), Refusal> {
    let client = service.pool.get().await?;
    let pay = "UPDATE orders SET state = 'paid' WHERE id = $1 AND state = 'open'";
    if client.execute(pay, &[&id]).await? == 0 {
        return Ok((StatusCode::CONFLICT, "there is no such order, or it is not open\n"));
    }
    // The jobs would find that the order is paid. But why wake up for that?
    service.jobs.cancel_by_key(&lapse::key(id)).await?;
    service.jobs.cancel_by_key(&remind::key(id)).await?;
    Ok((StatusCode::OK, "paid\n"))
}

/// An error inside. Its text is for the log, not for the client.
struct Refusal(Failed);

impl<E: Into<Failed>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        eprintln!("a request failed: {}", self.0);
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
