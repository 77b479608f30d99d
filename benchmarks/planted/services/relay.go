// Relays messages to a carrier, so many at a time as it has slots: relay -port PORT
//
// PUT /config?slots=N changes them while it runs; retries and codec can be changed alike, and change nothing that a load
// shows. /metrics has the slots in use and how many there are.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const carrier = 15 * time.Millisecond

func around(mean time.Duration) time.Duration {
	const scatter = 0.3
	return time.Duration(float64(mean) * math.Exp(scatter*rand.NormFloat64()-scatter*scatter/2))
}

type relay struct {
	mutex   sync.Mutex
	freed   *sync.Cond
	inUse   int
	slots   int
	retries int
	codec   string
}

func (r *relay) send(response http.ResponseWriter, _ *http.Request) {
	r.mutex.Lock()
	for r.inUse >= r.slots {
		r.freed.Wait()
	}
	r.inUse++
	r.mutex.Unlock()
	time.Sleep(around(carrier))
	r.mutex.Lock()
	r.inUse--
	r.mutex.Unlock()
	r.freed.Signal()
	fmt.Fprintln(response, "relayed")
}

func (r *relay) config(response http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if request.Method == http.MethodPut {
		for name, values := range request.URL.Query() {
			number, err := strconv.Atoi(values[0])
			switch {
			case name == "codec":
				r.codec = values[0]
			case err != nil || number < 1:
				http.Error(response, name+" takes a number from 1", http.StatusBadRequest)
				return
			case name == "slots":
				r.slots = number
			case name == "retries":
				r.retries = number
			}
		}
		r.freed.Broadcast()
	}
	json.NewEncoder(response).Encode(map[string]any{"slots": r.slots, "retries": r.retries, "codec": r.codec})
}

func (r *relay) metrics(response http.ResponseWriter, _ *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Fprintf(response, "# TYPE relay_slots_in_use gauge\nrelay_slots_in_use %d\n", r.inUse)
	fmt.Fprintf(response, "# TYPE relay_slots gauge\nrelay_slots %d\n", r.slots)
}

func main() {
	port := flag.Int("port", 0, "where it listens")
	flag.Parse()
	rand.Seed(time.Now().UnixNano())
	r := &relay{slots: 3, retries: 2, codec: "plain"}
	r.freed = sync.NewCond(&r.mutex)
	http.HandleFunc("/", r.send)
	http.HandleFunc("/config", r.config)
	http.HandleFunc("/metrics", r.metrics)
	log.Printf("listening on %d", *port)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}
