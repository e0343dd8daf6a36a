package metrics

import "github.com/prometheus/client_golang/prometheus"

var (
	diskFreeDesc = prometheus.NewDesc("tiptoe_data_free_bytes", "Bytes left to tiptoe where the data directory is.", nil, nil)
	diskSizeDesc = prometheus.NewDesc("tiptoe_data_size_bytes", "Size of the file system that the data directory is on.", nil, nil)
)

// WatchDisk shows how full the file system of a data directory is: a crawl
// stops when nothing can be written.
func (m *Metrics) WatchDisk(dir string) { m.reg.MustRegister(&diskCollector{dir}) }

type diskCollector struct{ dir string }

func (c *diskCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- diskFreeDesc
	ch <- diskSizeDesc
}

func (c *diskCollector) Collect(ch chan<- prometheus.Metric) {
	if free, size, ok := room(c.dir); ok {
		ch <- gauge(diskFreeDesc, float64(free))
		ch <- gauge(diskSizeDesc, float64(size))
	}
}
