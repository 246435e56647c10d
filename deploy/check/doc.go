// Package check tests what operators are given to watch Mimikit with: the alerts of
// deploy/prometheus and the dashboard of deploy/grafana. It is a module of its own, so
// that Prometheus' engine, which it asks, is not among the libraries of the program.
package check
