"""The resources, a module for each noun."""

from typing import Annotated

from fastapi import Depends, Request

from ..._async.client import AsyncBroker


def broker_of(request: Request) -> AsyncBroker:
    """The broker that this gateway is of."""
    broker: AsyncBroker = request.app.state.broker
    return broker


BrokerOf = Annotated[AsyncBroker, Depends(broker_of)]
