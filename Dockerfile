# One image for gateways and workers: `docker build -t interrupt-broker .`
# A worker of yours: FROM interrupt-broker, COPY your code, ENTRYPOINT ["python", "worker.py"].
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY broker ./broker
RUN python -m venv /opt/broker && /opt/broker/bin/pip install --no-cache-dir '.[gateway,cli,telemetry]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin broker
COPY --from=build /opt/broker /opt/broker
ENV PATH=/opt/broker/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /app
EXPOSE 8700
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8700/livez', timeout=3)"]
ENTRYPOINT ["broker"]
CMD ["serve", "--host", "0.0.0.0", "--log", "json"]
